"""A cluster's own words about itself → a `Topology`; one file a source."""
