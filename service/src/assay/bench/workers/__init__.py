"""Scripts that another Python runs, one whose packages this one does not have; they import nothing of this program."""
