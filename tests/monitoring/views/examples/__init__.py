"""Example answers of the REST endpoints of the views: one incident, with rows as sent."""
