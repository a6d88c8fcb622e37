package inbox

import (
	"context"
	"fmt"

	"example.com/banking/pkg/janitor"
)

// Starts are few: those that end are forgotten at once.
const removeStartsSQL = `delete from starts where noted_at < now() - $1::interval`

// NewJanitor makes the janitor that removes rows of the inbox which have passed their retention, and with them starts of messages that
// have never come back. A copy of a message that arrives later is handled as a new one. Pool and Retention are required.
func NewJanitor(config janitor.Config) *janitor.Janitor {
	config.Table, config.Column = "inbox", "received_at"
	config.Also = func(ctx context.Context) error {
		if _, err := config.Pool.Exec(ctx, removeStartsSQL, config.Retention); err != nil {
			return fmt.Errorf("remove old starts: %w", err)
		}
		return nil
	}
	return janitor.New(config)
}
