"""From scores to decisions with people in the loop: where the store, the runs and the reliability rules meet."""
