"""`agentgym report`: what runs have reached, as one HTML page that needs neither network nor scripts."""
