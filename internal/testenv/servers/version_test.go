package servers

import (
	"strings"
	"testing"
)

func TestAnOldBrokerIsRefusedInWords(t *testing.T) {
	t.Parallel()
	for version, refused := range map[string]bool{
		"3.8.35": true, "3.9.13": true, "2.99.0": true, "3.10.8": false, "3.10.0-rc.1": false, "3.13.7": false, "4.0.5": false, "4.3": false, "main": false, "": false,
	} {
		err := checkBroker(version)
		if (err != nil) != refused {
			t.Errorf("RabbitMQ %q: %v", version, err)
		}
		if err != nil && (!strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "install 3.10 or newer")) {
			t.Errorf("RabbitMQ %q: %v does not say what is wrong and what to do", version, err)
		}
	}
}
