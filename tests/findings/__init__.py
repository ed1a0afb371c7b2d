"""What strangers found in the first edition, one test a finding, run through what a user can reach."""
