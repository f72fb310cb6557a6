"""What the processes of an installation have to do with the machine and with each other."""
