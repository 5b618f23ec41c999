"""What a run reads while it goes, for those who look: Ray's metrics, a Grafana dashboard, a page of our own."""
