"""What the store holds, as rows: profiles read back, and the one that counts for each job."""
