"""What kopf and Kubernetes call: start, news from watches, probes. They enqueue and answer; they decide nothing."""
