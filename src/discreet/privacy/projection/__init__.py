"""What costs no privacy: valid counts, and counts that are consistent with a flow of users."""
