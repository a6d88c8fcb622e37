package newservice

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"example.com/banking/internal/dashboard"
)

//go:embed files
var files embed.FS

const thisModule = "example.com/banking"

// data is what the template knows.
type data struct {
	Order
	Title, Upper string // Fees and FEES of fees
	Events       []event
	PasswordHash string // of the broker's user, in the composition for Docker
	Replacement  string // of this repository in go.mod: the checkout
}

// Render makes all files of the service: their contents by path. The paths are below the checkout, or below the module's folder. An error
// says what is wrong with the order; nothing has been written then.
func Render(o Order) (map[string][]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d := data{
		Order: o, Title: strings.ToUpper(o.Name[:1]) + o.Name[1:], Upper: strings.ToUpper(o.Name),
		PasswordHash: passwordHash(o.Name + "-local-demo"),
	}
	var err error
	if d.Events, err = events(o.Name, o.Keys); err != nil {
		return nil, err
	}
	rendered := map[string][]byte{}
	if o.Module == "" {
		shown, err := dashboard.Service(o.Name) // as the bank's, whose panels it shares, it is made and not written
		rendered[path.Join("deploy", "grafana", "dashboards", "services", o.Name+".json")] = shown
		return rendered, errors.Join(err,
			d.render("files/service", path.Join("services", o.Name), rendered),
			d.render("files/repository", "", rendered))
	}
	err = errors.Join(d.render("files/service", "", rendered), d.render("files/module", "", rendered))
	if o.Version == "" {
		// What `go mod tidy` makes of it, so that nothing has to be asked of the network. go generate keeps it so.
		d.Replacement = o.Checkout
		if strings.ContainsAny(o.Checkout, " \t\"'`()[]{},") {
			d.Replacement = strconv.Quote(o.Checkout)
		}
		err = errors.Join(err, d.render("files/replaced", "", rendered))
	}
	return rendered, err
}

// render adds the files of a folder of the template, below the given path.
func (d data) render(folder, below string, rendered map[string][]byte) error {
	return fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		// Go and YAML use braces for themselves.
		t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return fmt.Errorf("template: %w", err)
		}
		var out bytes.Buffer
		if err := t.Execute(&out, d); err != nil {
			return fmt.Errorf("template: %w", err)
		}
		to := strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".tmpl")
		to = path.Join(below, strings.ReplaceAll(to, "NAME", d.Name))
		content := out.Bytes()
		if path.Ext(to) == ".go" {
			if content, err = format.Source(content); err != nil {
				return fmt.Errorf("template: %s: %w", name, err)
			}
		}
		rendered[to] = content
		return nil
	})
}

// Write writes what Render made below the folder, in the order of the paths, and returns these. It overwrites nothing: when a file is there
// already, none is written.
func Write(folder string, rendered map[string][]byte) ([]string, error) {
	paths := slices.Sorted(maps.Keys(rendered))
	for _, name := range paths {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			return nil, fmt.Errorf("%s is there already; nothing was written", filepath.Join(folder, name))
		}
	}
	for _, name := range paths {
		to := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
		file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, fmt.Errorf("make file: %w", err)
		}
		_, err = file.Write(rendered[name])
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("write file: %w", err)
		}
	}
	return paths, nil
}

// Checkout finds the root of the checkout of this repository that dir lies in; "" when it lies in none.
func Checkout(dir string) string {
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			if first, _, _ := strings.Cut(string(content), "\n"); strings.TrimSpace(first) == "module "+thisModule {
				return dir
			}
			return ""
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// passwordHash is a password as RabbitMQ keeps it: a salt of four bytes, and the SHA-256 of salt and password. The password is public, so
// the salt may follow from it, and the same order makes the same file.
func passwordHash(password string) string {
	first := sha256.Sum256([]byte(password))
	salt := first[:4]
	salted := sha256.Sum256(append(slices.Clone(salt), password...))
	return base64.StdEncoding.EncodeToString(append(slices.Clone(salt), salted[:]...))
}
