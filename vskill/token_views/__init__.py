"""How people and programs come by tokens: the login of a device and its page."""
