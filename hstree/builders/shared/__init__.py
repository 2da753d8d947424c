"""What tree methods share."""
