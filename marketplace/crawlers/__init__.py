"""What crawlers and agents read first: the sitemap in parts, robots.txt and llms.txt."""
