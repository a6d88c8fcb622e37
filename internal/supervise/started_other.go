//go:build !linux

package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Started says when a process began, in words of the system: together with its id that names one process only, for ids are given
// again. An error says that there is no such process.
func Started(pid int) (string, error) {
	ps := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid))
	ps.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC") // the same words for everybody who asks
	out, err := ps.Output()
	words := strings.Fields(string(out))
	if err != nil {
		return "", fmt.Errorf("when process %d began: %w", pid, err)
	}
	if len(words) == 0 {
		return "", fmt.Errorf("when process %d began: ps does not say", pid)
	}
	return strings.Join(words, "-"), nil
}
