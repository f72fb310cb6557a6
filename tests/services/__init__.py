"""Services that tests need and that no test may assume: started on loopback, stopped whatever happens."""
