"""The lines with which each client installs: how it is called, and what pages, API and llms.txt offer of that."""
