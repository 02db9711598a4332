package file

import "sync"

// owners knows which follower has which file, so that of several targets with
// equal labels, by whose paths one file is found, only one sends its lines: the
// pattern *.log* matches a file before and after its rotation.
type owners struct {
	mu sync.Mutex
	by map[owned]*follower
}

type owned struct {
	key string // of the target's labels
	id  identity
}

// isOwnedByOther reports whether another follower has the file.
func (o *owners) isOwnedByOther(f *follower, id identity) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	by := o.by[owned{f.target.key, id}] // nobody has the file without an identity
	return by != nil && by != f
}

// hasOwner reports whether a follower has the file of p.
func (o *owners) hasOwner(p *position) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.by[owned{p.labels, p.id}] != nil
}

// claimFile makes the file f's, unless another follower has it.
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
