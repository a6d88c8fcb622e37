package plot

import (
	"crypto/sha256"
	"encoding/base64"
)

// rules give the colours; those of the series are told apart by people who confuse red and green too, and by dashes and marks by who sees
// no colour at all. All of it is bound to the class plot, because a drawing that stands inside a page shares its style sheet with the page.
const rules = `
.plot { --ink: #1f2328; --faint: #59636e; --grid: #d1d9e0; --shade: #59636e; --s0: #0969da; --s1: #bc4c00; --s2: #1a7f37; --s3: #8250df }
@media (prefers-color-scheme: dark) {
.plot { --ink: #f0f6fc; --faint: #9198a1; --grid: #3d444d; --shade: #9198a1; --s0: #4493f8; --s1: #f0883e; --s2: #3fb950; --s3: #ab7df8 }
}
.plot text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.plot .title { font-size: 16px; font-weight: 600 }
.plot .name { font-weight: 600 }
.plot .tick { fill: var(--faint); font-size: 12px }
.plot .middle { text-anchor: middle }
.plot .end { text-anchor: end }
.plot .grid { stroke: var(--grid); stroke-width: 1 }
.plot .shade { fill: var(--shade); fill-opacity: .14 }
.plot .line { fill: none; stroke-width: 2 }
.plot .bar { fill-opacity: .55 }
.plot .band { fill-opacity: .22; stroke-width: 1 }
.plot .mark { stroke-dasharray: none; stroke-width: 1.5 }
.plot .held { fill: none; stroke-width: 8; stroke-dasharray: 3 3 }
.plot .s0 { stroke: var(--s0) } .plot .f0 { fill: var(--s0) }
.plot .s1 { stroke: var(--s1); stroke-dasharray: 6 3 } .plot .f1 { fill: var(--s1) }
.plot .s2 { stroke: var(--s2); stroke-dasharray: 2 3 } .plot .f2 { fill: var(--s2) }
.plot .s3 { stroke: var(--s3); stroke-dasharray: 10 3 2 3 } .plot .f3 { fill: var(--s3) }
.plot .mark.s0, .plot .mark.s1, .plot .mark.s2, .plot .mark.s3 { stroke-dasharray: none }
`

// StyleSource names the style sheet that every drawing carries, for the style-src of a Content-Security-Policy: a server that sends
// drawings needs to allow nothing else.
func StyleSource() string {
	sum := sha256.Sum256([]byte(rules))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
