"""What other sites show of a skill: a badge, a card for a frame, and the answer of oEmbed."""
