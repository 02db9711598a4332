package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/weir-run/weir/engine/service/http"
)

// Disconnected is the message that weir does not answer. The screen keeps the last
// rates.
type Disconnected struct{ Reason string }

// Screen is the model of the screen. Its messages are http.Usage, Disconnected, keys
// and sizes.
type Screen struct {
	view    View
	before  *http.Usage // of the same response
	rates   *Rates      // nil before the second line of the first response
	gone    string      // why weir does not answer; "" if it does
	from    int         // the first node on the screen
	width   int
	height  int
	editing bool // the filter
	color   bool
}

// NewScreen returns a screen with nodes that it waits for.
func NewScreen(v View, color bool) Screen {
	return Screen{view: v, width: 80, height: 24, color: color}
}

// Init does nothing.
func (Screen) Init() tea.Cmd { return nil }

// Update applies a message.
func (s Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case http.Usage:
		if s.before != nil {
			r := Between(*s.before, msg)
			s.rates = &r
		}
		s.before, s.gone = &msg, ""
	case Disconnected:
		s.before, s.gone = nil, msg.Reason
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" {
			return s, tea.Quit
		}
		if s.editing {
			s.edit(msg)
		} else if s.press(msg.String()) {
			return s, tea.Quit
		}
	}
	s.from = max(min(s.from, len(s.nodes())-s.room()), 0)
	return s, nil
}

// edit changes the filter.
func (s *Screen) edit(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		s.editing = false
	case "esc":
		s.editing, s.view.Filter = false, ""
	case "backspace":
		if r := []rune(s.view.Filter); len(r) > 0 {
			s.view.Filter = string(r[:len(r)-1])
		}
	default:
		s.view.Filter += printable(key.Text)
	}
}

// press applies a key and reports whether it ends the program.
func (s *Screen) press(key string) (quit bool) {
	switch key {
	case "q":
		return true
	case "/":
		s.editing = true
	case "esc":
		s.view.Filter = ""
	case "r":
		s.view.Reverse = !s.view.Reverse
	case "right", "l", ">":
		s.sortBy(1)
	case "left", "h", "<":
		s.sortBy(-1)
	case "down", "j":
		s.from++
	case "up", "k":
		s.from--
	case "pgdown", "space":
		s.from += s.room()
	case "pgup":
		s.from -= s.room()
	case "home", "g":
		s.from = 0
	case "end", "G":
		s.from = len(s.nodes())
	}
	return false
}

// sortBy sorts by the next column on the screen, or the previous one.
func (s *Screen) sortBy(step int) {
	names := []string{columns[0].sort}
	cols, _ := fitting(s.width)
	for _, c := range cols {
		names = append(names, c.sort)
	}
	at := max(slices.Index(names, s.view.Sort), 0)
	s.view.Sort = names[(at+step+len(names))%len(names)]
}

func (s *Screen) nodes() []Node {
	if s.rates == nil {
		return nil
	}
	return s.view.Nodes(s.rates.Nodes)
}

// room returns the number of nodes that fit on the screen.
func (s *Screen) room() int { return max(s.height-3, 1) }

// View returns the screen.
func (s Screen) View() tea.View {
	v := tea.NewView(strings.Join(s.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "weir top"
	return v
}

// lines returns the lines of the screen, none of which is wider than the screen.
func (s *Screen) lines() []string {
	top := "measuring…"
	if s.rates != nil {
		top = s.rates.summary()
	}
	if s.gone != "" {
		top = s.paint("31;1", printable(s.gone))
	}
	cols, name := fitting(s.width)
	lines := []string{top, heading(cols, name, s.view.Sort)}
	nodes := s.nodes()
	shown := nodes[min(s.from, len(nodes)):min(s.from+s.room(), len(nodes))]
	for _, n := range shown {
		line := row(n, cols, name, s.rates.CPUError == "")
		if n.sick() {
			line = s.paint("31", line)
		}
		lines = append(lines, line)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, s.help(len(nodes)))
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, s.width, "…")
	}
	return lines
}

// help returns the last line.
func (s *Screen) help(nodes int) string {
	if s.editing {
		return "filter: " + s.view.Filter + "_   enter keep  esc clear"
	}
	text := "q quit  ←→ sort  r reverse  / filter  ↑↓ scroll"
	if s.view.Filter != "" {
		text = fmt.Sprintf("filter: %s   esc clear  %s", s.view.Filter, text)
	}
	if nodes > s.room() {
		text = fmt.Sprintf("%d–%d of %d  %s", s.from+1, min(s.from+s.room(), nodes), nodes, text)
	}
	return text
}

func (s *Screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
