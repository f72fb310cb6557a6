"""Published skills as git repositories, read only: their objects, and the protocol in which git asks for them."""
