package service_test

import (
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"go.yaml.in/yaml/v4"
)

const baseDocument = `openapi: 3.0.3
info: {title: base, version: "1"}
tags:
  - name: accounts
paths:
  # the first
  /accounts:
    get:
      operationId: listAccounts
      responses:
        "200": {description: ok}
components:
  schemas:
    Problem: {type: object, required: [type]}
`

const adminFragment = `tags:
  - name: accounts
  - name: admin
paths:
  /admin/things:
    get:
      operationId: listThings
      responses:
        "200":
          description: |
            ok,
            in two lines
components:
  schemas:
    Thing: {type: string}
    Problem:
      type: object
      required:
        - type
  responses:
    Gone: {description: gone}
`

func TestFragmentsAreMergedIntoTheDocument(t *testing.T) {
	t.Parallel()
	merged, err := service.MergeOpenAPI([]byte(baseDocument), []byte(adminFragment), []byte("paths: {/admin/others: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Tags       []map[string]string
		Paths      map[string]any
		Components map[string]map[string]any
	}
	if err := yaml.Load(merged, &document); err != nil {
		t.Fatalf("%v in\n%s", err, merged)
	}
	if len(document.Paths) != 3 || document.Paths["/admin/things"] == nil {
		t.Errorf("paths are %v", document.Paths)
	}
	if len(document.Tags) != 2 || document.Tags[1]["name"] != "admin" {
		t.Errorf("tags are %v", document.Tags)
	}
	if len(document.Components["schemas"]) != 2 || document.Components["responses"]["Gone"] == nil {
		t.Errorf("components are %v", document.Components)
	}
	for _, kept := range []string{"# the first", `"200"`, "ok,\n            in two lines", "required: [type]"} {
		if !strings.Contains(string(merged), kept) {
			t.Errorf("%q is not in\n%s", kept, merged)
		}
	}
}

func TestWhatWouldBeOverwrittenIsNotMerged(t *testing.T) {
	t.Parallel()
	for name, fragment := range map[string]string{
		"/accounts is there already":                    "paths: {/accounts: {}}",
		"operationId listAccounts is there already":     "paths: {/other: {get: {operationId: listAccounts}}}",
		"Problem is there already, with another":        "components: {schemas: {Problem: {type: string}}}",
		"info: has no place in a fragment":              "info: {title: other}",
		"fragment 1: not a mapping":                     "- a list",
		"fragment 1: ":                                  "paths: {unclosed",
		"components: schemas: Problem is there already": "components: {schemas: {Problem: {type: object}}}",
	} {
		if _, err := service.MergeOpenAPI([]byte(baseDocument), []byte(fragment)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("merging %s: %v, should say %q", fragment, err, name)
		}
	}
	if _, err := service.MergeOpenAPI([]byte("")); err == nil {
		t.Error("an empty base is merged")
	}
}

func TestADocumentWithoutFragmentsSaysTheSame(t *testing.T) {
	t.Parallel()
	merged, err := service.MergeOpenAPI([]byte(baseDocument))
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if err := yaml.Load([]byte(baseDocument), &before); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Load(merged, &after); err != nil {
		t.Fatal(err)
	}
	if string(must(yaml.Marshal(before))) != string(must(yaml.Marshal(after))) {
		t.Errorf("the merged document is\n%s", merged)
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
