"""How people and programs come by tokens: the login of a device, its page, and a person's own tokens."""
