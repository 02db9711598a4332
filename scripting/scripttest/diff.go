package scripttest

import "strings"

// maxDiff bounds what is compared line by line; the work grows with its square.
const maxDiff = 2000

// maxShown is how many lines of a difference are shown.
const maxShown = 200

// lineDiff returns the lines of want and got, those of one only marked - and
// +, with at most two equal lines around them; "" when they are equal.
func lineDiff(want, got []string) string {
	var b strings.Builder
	type op struct {
		mark byte
		line string
	}
	var ops []op
	head := 0
	for head < len(want) && head < len(got) && want[head] == got[head] {
		ops = append(ops, op{' ', want[head]})
		head++
	}
	tail := 0
	for tail < len(want)-head && tail < len(got)-head && want[len(want)-1-tail] == got[len(got)-1-tail] {
		tail++
	}
	end := want[len(want)-tail:]
	a, c := want[head:len(want)-tail], got[head:len(got)-tail]
	if len(a) == 0 && len(c) == 0 {
		return ""
	}
	if len(a) > maxDiff || len(c) > maxDiff {
		for _, l := range a {
			ops = append(ops, op{'-', l})
		}
		for _, l := range c {
			ops = append(ops, op{'+', l})
		}
		a, c = nil, nil
	}
	common := longest(a, c)
	i, j := 0, 0
	for i < len(a) || j < len(c) {
		switch {
		case i < len(a) && j < len(c) && a[i] == c[j]:
			ops = append(ops, op{' ', a[i]})
			i, j = i+1, j+1
		case j == len(c) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			ops = append(ops, op{'-', a[i]})
			i++
		default:
			ops = append(ops, op{'+', c[j]})
			j++
		}
	}
	for _, l := range end {
		ops = append(ops, op{' ', l})
	}
	const context = 2
	shown := make([]bool, len(ops))
	for i, o := range ops {
		if o.mark != ' ' {
			for k := max(0, i-context); k <= min(len(ops)-1, i+context); k++ {
				shown[k] = true
			}
		}
	}
	lines := 0
	for i, o := range ops {
		if lines == maxShown {
			b.WriteString("  … and more\n")
			break
		}
		if shown[i] {
			lines++
		}
		switch {
		case shown[i]:
			b.WriteByte(o.mark)
			b.WriteByte(' ')
			b.WriteString(o.line)
			b.WriteByte('\n')
		case i == 0 || shown[i-1]:
			b.WriteString("  …\n")
		}
	}
	return b.String()
}

// longest returns, for all suffixes of a and b, the length of the longest
// common subsequence.
func longest(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	return n
}

func splitLines(s string) []string {
	if s = strings.TrimSuffix(s, "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
