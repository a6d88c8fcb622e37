package supervise

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Started says when a process began, in the kernel's own words: together with its id that names one process only, for ids are given
// again. An error says that there is no such process.
func Started(pid int) (string, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", fmt.Errorf("when process %d began: %w", pid, err)
	}
	const beginning = 22 - 3 // of the fields behind the program's name, which may hold anything, also spaces and parentheses
	text := string(content)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= beginning {
		return "", fmt.Errorf("when process %d began: /proc does not say", pid)
	}
	return fields[beginning], nil
}
