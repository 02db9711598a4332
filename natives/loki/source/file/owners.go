package file

import "sync"

// owners records which follower owns which file. If several targets with equal
// labels lead to one file by different paths, only one of them sends its lines:
// the pattern *.log* matches a file before and after its rotation.
type owners struct {
	mu sync.Mutex
	by map[owned]*follower
}

type owned struct {
	key string // of the labels of the target
	id  identity
}

// isOwnedByOther reports whether another follower owns the file.
func (o *owners) isOwnedByOther(f *follower, id identity) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	by := o.by[owned{f.target.key, id}] // the zero identity has no owner
	return by != nil && by != f
}

// hasOwner reports whether a follower owns the file of p.
func (o *owners) hasOwner(p *position) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.by[owned{p.labels, p.id}] != nil
}

// claimFile makes f the owner of the file, unless another follower owns it.
func (o *owners) claimFile(f *follower, id identity) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id == (identity{}) {
		return true
	}
	k := owned{f.target.key, id}
	if by := o.by[k]; by != nil && by != f {
		return false
	}
	o.by[k] = f
	return true
}

func (o *owners) release(f *follower, id identity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := (owned{f.target.key, id}); o.by[k] == f {
		delete(o.by, k)
	}
}
