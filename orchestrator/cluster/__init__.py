"""Ray: connection, gang of workers, their failures, snapshots on disk."""
