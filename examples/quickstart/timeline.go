package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// timeline prints what happens, and when. It is used by one goroutine.
type timeline struct {
	out    io.Writer
	colour bool
	state  func() string // of the store, now: the middle column
	start  time.Time
}

func newTimeline(out io.Writer, colour bool) *timeline {
	return &timeline{out: out, colour: colour, state: func() string { return "" }, start: time.Now()}
}

const (
	width  = 116            // of a line
	margin = 8 + 2 + 13 + 2 // width of the first two columns, and of what separates them
	bold   = "1"            // the terminal's codes
	dim    = "2"
	green  = "32"
	yellow = "33"
)

// title begins a step.
func (t *timeline) title(number int, title string) {
	fmt.Fprintln(t.out, t.paint(bold, fmt.Sprintf("%d. %s", number, title)))
}

// took ends a step.
func (t *timeline) took(d time.Duration) {
	fmt.Fprintf(t.out, "%*s%s\n\n", margin, "", t.paint(dim, "step took "+seconds(d)))
}

// say prints one thing that happened.
func (t *timeline) say(format string, args ...any) {
	state, colour := t.state(), yellow
	if strings.HasSuffix(state, "Ready") {
		colour = green
	}
	columns := fmt.Sprintf("%7.2fs  %s  ", time.Since(t.start).Seconds(), t.paint(colour, fmt.Sprintf("%-13s", state)))
	for _, line := range wrap(fmt.Sprintf(format, args...), width-margin) {
		fmt.Fprintf(t.out, "%s%s\n", columns, line)
		columns = strings.Repeat(" ", margin)
	}
}

func (t *timeline) paint(colour, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// wrap breaks text at spaces into lines of at most so many characters, except
// for words that are longer. The lines after the first are indented.
func wrap(text string, limit int) (lines []string) {
	for len(text) > limit {
		at := strings.LastIndex(text[:limit+1], " ")
		if at <= len(indent) {
			break
		}
		lines = append(lines, text[:at])
		text = indent + text[at+1:]
	}
	return append(lines, text)
}

const indent = "  "

// seconds formats a duration for people.
func seconds(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
