package servers

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/banking/internal/management"
)

// oldestBroker is the first RabbitMQ whose quorum queues dead-letter at least once. An older one cannot keep what the
// retry roads promise, and a distribution of some years ago has one.
const oldestBroker = "3.10"

// refuseOldBroker asks the broker that has just become ready for its version.
func (s *Servers) refuseOldBroker(ctx context.Context) error {
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := management.New(s.Addresses().ManagementURL).Get(ctx, "/api/overview", &overview); err != nil {
		return err
	}
	return checkBroker(overview.Version)
}

func checkBroker(version string) error {
	if older(version, oldestBroker) {
		return fmt.Errorf("RabbitMQ %s is too old: its queues can lose a message between two attempts; install %s or newer, "+
			"from the RabbitMQ team's packages where the system has none", version, oldestBroker)
	}
	return nil
}

// older compares the first two numbers of versions. What cannot be read is taken for new: a distribution may write anything.
func older(version, than string) bool {
	major, minor, ok := numbers(version)
	wantedMajor, wantedMinor, wanted := numbers(than)
	return ok && wanted && (major < wantedMajor || major == wantedMajor && minor < wantedMinor)
}

func numbers(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, badMajor := strconv.Atoi(parts[0])
	minor, badMinor := strconv.Atoi(parts[1])
	return major, minor, badMajor == nil && badMinor == nil
}
