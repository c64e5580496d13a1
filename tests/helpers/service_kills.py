"""Processes of the service that kill themselves at a commit."""

import multiprocessing
import os
import signal
import warnings


def forked(job):
    """Run a job in a process of its own; False if it was killed, an error if it failed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads
        child = os.fork()
    if not child:
        code = 1
        try:
            job()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, "the job failed"
    return True


class Apart:
    """Runs a job in processes of its own again and again, while this one has threads.

    A fork of a process whose threads are at work may inherit a lock that nobody opens any more. So
    one is made beforehand, which has no threads, and it makes all others.
    """

    def __init__(self, job):
        self._ours, theirs = multiprocessing.Pipe()
        self._process = os.fork()
        if not self._process:
            try:
                while (arguments := theirs.recv()) is not None:
                    theirs.send(_outcome(job, arguments))
            finally:
                os._exit(0)
        theirs.close()

    def __call__(self, *arguments):
        """As `forked`."""
        self._ours.send(arguments)
        outcome = self._ours.recv()
        assert isinstance(outcome, bool), outcome
        return outcome

    def close(self):
        """End the process."""
        self._ours.send(None)
        self._ours.close()
        os.waitpid(self._process, 0)


def _outcome(job, arguments):
    try:
        return forked(lambda: job(*arguments))
    except AssertionError as error:
        return str(error)


def killer(point):
    """A hook that kills its process the first time it is called with this name."""

    def at(name):
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return at
