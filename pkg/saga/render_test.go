package saga_test

import "testing"

func TestProcessInMarkdown(t *testing.T) {
	t.Parallel()
	compare(t, parcel.Markdown(), "| the set holds | status | on turning to it, says |\n"+
		"| --- | --- | --- |\n"+
		"| `ARRIVED` | `HERE`, the end | `Arrived` |\n"+
		"| `LOST` | `GONE`, the end | `Lost` |\n"+
		"| `SENT` | `UNDERWAY` | `Sent` |\n"+
		"\nNever together:\n\n- `ARRIVED` and `LOST`\n"+
		"\n| told | in `UNDERWAY` | in `HERE` | in `GONE` |\n"+
		"| --- | --- | --- | --- |\n"+
		"| `ARRIVED` | → `HERE` | known | refused |\n"+
		"| `LOST` | → `GONE` | refused | known |\n"+
		"| `INSURED` | stays | stays | stays |\n")
}

func TestProcessInMermaid(t *testing.T) {
	t.Parallel()
	compare(t, parcel.Mermaid(), `stateDiagram-v2
    [*] --> UNDERWAY
    UNDERWAY --> HERE: ARRIVED
    UNDERWAY --> GONE: LOST
    HERE --> [*]
    GONE --> [*]
`)
}

func TestTableInMarkdown(t *testing.T) {
	t.Parallel()
	describe := func(effect text) string { return "the door does " + string(effect) }
	compare(t, door.Markdown(describe), "| state | request | rules say | → state | effect | answer |\n"+
		"| --- | --- | --- | --- | --- | --- |\n"+
		"| none | `Install` |  | `SHUT` |  | `Installed` |\n"+
		"| `SHUT` | `Open` | yes | `OPEN` | the door does swing | `Opened` |\n"+
		"| `SHUT` | `Open` | no | `SHUT` |  | `Refused` |\n"+
		"| `OPEN` | `Install` |  | `OPEN` |  | none, fails with `NOT_FOUND` |\n")
}

func TestTableInMermaid(t *testing.T) {
	t.Parallel()
	compare(t, door.Mermaid(), `stateDiagram-v2
    [*] --> SHUT: Install
    SHUT --> OPEN: Open
    OPEN --> [*]
`)
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
