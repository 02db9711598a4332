package file

import "slices"

// index finds positions without a scan of all positions. With ten thousand files
// that each search for their own position, scans would dominate the start.
type index struct {
	paths map[string][]*position
	files map[identity][]*position
}

func newIndex() index {
	return index{paths: map[string][]*position{}, files: map[identity][]*position{}}
}

func (x index) put(p *position) {
	x.paths[p.path] = append(x.paths[p.path], p)
	x.files[p.id] = append(x.files[p.id], p)
}

// cut removes p, which is in the index under path and id.
func (x index) cut(p *position, path string, id identity) {
	removePosition(x.paths, path, p)
	removePosition(x.files, id, p)
}

func removePosition[K comparable](m map[K][]*position, k K, p *position) {
	ps := m[k]
	if i := slices.Index(ps, p); i >= 0 {
		ps = slices.Delete(ps, i, i+1)
	}
	if len(ps) == 0 {
		delete(m, k)
		return
	}
	m[k] = ps
}

// ofPath returns the positions of a path for which ok returns true, in the order
// of creation. ok must not call s.
func (s *positions) ofPath(path string, ok func(*position) bool) []*position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return filterPositions(s.index.paths[path], ok)
}

// ofFile returns the positions of a file for which ok returns true, in the order
// of creation. ok must not call s.
func (s *positions) ofFile(id identity, ok func(*position) bool) []*position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return filterPositions(s.index.files[id], ok)
}

// copies returns copies of the current values of ps.
func (s *positions) copies(ps []*position) (vs []position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range ps {
		vs = append(vs, *p)
	}
	return vs
}

func filterPositions(from []*position, ok func(*position) bool) (ps []*position) {
	for _, p := range from {
		if ok(p) {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b *position) int { return int(a.n) - int(b.n) })
	return ps
}
