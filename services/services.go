// Package services knows which services there are: every folder here that says so in a file service.json. It imports none of them; they
// know each other by messages only.
package services

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
)

//go:embed */service.json
var files embed.FS

// Service is what starts a service and finds it needs to know.
type Service struct {
	// Name is that of the folder, the program, the database and its role, the broker's user, and what its queues begin with.
	Name string `json:"-"`
	Port int    `json:"port"` // the usual one; HTTP_ADDR has the last word
}

// All lists the services by port. An error says which service.json is wrong.
func All() ([]Service, error) {
	names, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	all := make([]Service, 0, len(names))
	for _, folder := range names {
		s := Service{Name: folder.Name()}
		name := path.Join(s.Name, "service.json")
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, fmt.Errorf("services/%s: %w", name, err)
		}
		if s.Port < 1 || s.Port > 65535 {
			return nil, fmt.Errorf("services/%s: the port is %d, wanted 1 to 65535", name, s.Port)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Service) int { return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// Others are the services beside account, transfer and the console, on which the rest of the repository is built.
func Others() ([]Service, error) {
	all, err := All()
	return slices.DeleteFunc(all, func(s Service) bool {
		return s.Name == "account" || s.Name == "transfer" || s.Name == "console"
	}), err
}
