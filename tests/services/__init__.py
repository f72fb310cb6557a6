"""Services that tests need: started on loopback and always stopped."""
