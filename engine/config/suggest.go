package config

import (
	"fmt"
	"slices"
	"strings"
)

// DidYouMean returns a hint with the candidates that are most similar to name,
// or "" if there are none.
func DidYouMean(name string, candidates []string) string {
	return didYouMean(nearest(name, candidates))
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(near, " or "))
}

// nearest returns up to three candidates within an edit distance of a third of
// the name's length (at least 1 and at most 3), nearest first.
func nearest(name string, candidates []string) []string {
	limit := max(1, min(len(name)/3, 3))
	type scored struct {
		name string
		d    int
	}
	var near []scored
	for _, c := range candidates {
		if d := editDistance(name, c, limit); d <= limit && c != name {
			near = append(near, scored{c, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int {
		if a.d != b.d {
			return a.d - b.d
		}
		return strings.Compare(a.name, b.name)
	})
	var names []string
	for _, s := range near {
		// Skip candidates that are much worse than the best.
		if len(names) == 3 || s.d > near[0].d+1 {
			break
		}
		names = append(names, s.name)
	}
	return slices.Compact(names)
}

// editDistance returns the number of insertions, deletions, replacements and
// transpositions of adjacent bytes between two strings (optimal string
// alignment). If it exceeds limit, the result may be limit+1.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
