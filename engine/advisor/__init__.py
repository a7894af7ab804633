"""What is wrong and what to change: findings, recommendations with reruns, the tuning loop."""
