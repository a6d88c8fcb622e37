package messaging

import "time"

// HoldAtMost says for how long a delivery is held that is not started.
func (c *ConsumerConfig) HoldAtMost(d time.Duration) { c.maxHold = d }
