package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

// maxItems is the maximum number of items of a foreach.
const maxItems = 10_000

// loop is the collection with which a foreach was expanded.
type loop struct {
	id    string
	f     *config.Foreach
	known bool     // there has been a collection
	keys  []string // of the items, which are the names of their modules
	items []any
	err   error // why it differs from the current collection
}

// foreach expands a foreach when its collection is known.
func (x *planner) foreach(m *module, b *config.Block) {
	w := &wanted{kind: kindForeach, id: m.prefix() + b.ID, m: m, block: b}
	f, ds := b.Foreach(m.scope)
	x.report(w, ds)
	w.loop = &loop{id: w.id, f: f}
	x.add(w)
	x.p.loops[w.id] = w.loop
	if f.Var == "" || f.Template == nil {
		return
	}
	if m.id == "" || m.abstract {
		x.checks = append(x.checks, func() { x.checkTemplate(w) })
	}
	if m.abstract || f.Collection == nil {
		return
	}
	x.later = append(x.later, func(final bool) bool {
		if !x.collect(w, final) {
			return false
		}
		for i, key := range w.loop.keys {
			x.item(w, i, key)
		}
		return true
	})
}

// collect determines the items of a foreach: those of its collection, or, while
// the graph runs, the last valid ones.
func (x *planner) collect(w *wanted, final bool) (done bool) {
	l := w.loop
	if err := l.set(w.values()); err == nil {
		return true
	} else if ds, ok := errors.AsType[config.Diagnostics](err); ok {
		if !x.mode.running {
			x.report(w, ds)
		}
		l.err = ds.Err()
	} else if !final {
		return false
	}
	if old := x.oldLoop(w); old != nil {
		l.keys, l.items, l.known = old.keys, old.items, old.known
	}
	return true
}

func (x *planner) oldLoop(w *wanted) *loop {
	if x.e.plan == nil || !x.mode.running {
		return nil
	}
	return x.e.plan.loops[w.id]
}

// set sets the items to those of the current collection. An error in the
// collection is a config.Diagnostics.
func (l *loop) set(scope *config.Scope) error {
	v := l.f.Collection.Evaluate(scope)
	if v.Err != nil {
		return v.Err
	}
	if v.Provisional {
		return config.Pending(l.id)
	}
	wrong := func(format string, args ...any) error {
		return config.Diagnostics{{Span: l.f.Collection.Span, Msg: "collection: " + fmt.Sprintf(format, args...)}}
	}
	list := reflect.ValueOf(v.V)
	if list.Kind() != reflect.Slice {
		return wrong("should be list, got %s", config.TypeOf(v.V))
	}
	if list.Len() > maxItems {
		return wrong("has %d items, more than the %d allowed", list.Len(), maxItems)
	}
	var keys []string
	var items []any
	count := map[string]int{}
	for i := range list.Len() {
		item := list.Index(i).Interface()
		key, err := itemKey(item, l.f.ID, l.f.HashStringID)
		if err != nil {
			return wrong("item %d %v", i, err)
		}
		count[key]++
		keys = append(keys, fmt.Sprintf("foreach_%s_%d", key, count[key]))
		items = append(items, item)
	}
	l.keys, l.items, l.known, l.err = keys, items, true, nil
	return nil
}

// item expands the template for an item.
func (x *planner) item(w *wanted, i int, key string) {
	f, m := w.loop.f, w.m
	id := w.id + "/" + key
	in := &module{id: id, names: newNames(m.names, ""), scope: m.scope.Within(id + "/"), blocks: f.Template,
		decl: m.decl, outer: m, block: w, item: i, chain: m.chain, muted: m.muted || !f.EnableMetrics}
	v := &wanted{kind: kindItem, id: id + "/" + f.Var, m: in, block: w.block, loop: w.loop, item: i, scope: in.scope, name: f.Var}
	in.scope.SetVariable(f.Var, v.id, config.Value{V: w.loop.items[i]})
	x.add(v)
	x.body(in, f.Template)
}

// checkTemplate checks a template by itself, for any item.
func (x *planner) checkTemplate(w *wanted) {
	y := x.aside()
	f, m := w.loop.f, w.m
	id := w.id + "/template"
	in := &module{id: id, names: newNames(m.names, ""), scope: m.scope.Within(id + "/"), blocks: f.Template,
		decl: m.decl, outer: m, block: w, abstract: true}
	in.scope.SetVariable(f.Var, "", config.Value{Err: config.ErrUnknown})
	x.checkBody(y, in, f.Template, m.decl)
}

// itemKey returns a key that identifies an item, consisting of letters, digits
// and _. It is derived from the item, or if it is an object, from its field id
// or the whole object.
func itemKey(item any, id string, hash bool) (string, error) {
	if id != "" {
		if v, ok := field(item, id); ok {
			item = v
			if _, nested := simple(item); !nested && item != nil {
				key, err := fingerprint(item)
				if err != nil {
					return "", fmt.Errorf("has an %s that %w", id, err)
				}
				return key, nil
			}
		}
	}
	if s, ok := simple(item); ok {
		if _, text := item.(string); hash && text {
			return digest(s), nil
		}
		return sanitized(s), nil
	}
	return fingerprint(item)
}

// field returns a field of an object.
func field(item any, name string) (any, bool) {
	v := reflect.ValueOf(item)
	if v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String {
		return nil, false
	}
	f := v.MapIndex(reflect.ValueOf(name))
	if !f.IsValid() {
		return nil, false
	}
	return f.Interface(), true
}

// simple returns a string, number or bool as text.
func simple(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case component.OptionalSecret:
		return v.Value, !v.IsSecret
	}
	if rv := reflect.ValueOf(v); rv.CanInt() || rv.CanUint() {
		return fmt.Sprint(v), true
	}
	return "", false
}

// sanitized converts a text to a valid part of an ID and of a path. If the text
// had to be changed, a hash is appended, to distinguish it from other texts
// with the same result.
func sanitized(s string) string {
	out := []byte(s)
	for i, c := range out {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_') {
			out[i] = '_'
		}
	}
	if len(out) > 64 {
		out = out[:64]
	}
	if string(out) == s {
		return s
	}
	return string(out) + "_" + digest(s)[:6]
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// fingerprint returns a hash of a value of the language.
func fingerprint(v any) (string, error) {
	var b strings.Builder
	if err := write(&b, v); err != nil {
		return "", err
	}
	return digest(b.String()), nil
}

// write writes a value unambiguously.
func write(b *strings.Builder, v any) error {
	if s, ok := simple(v); ok {
		fmt.Fprintf(b, "%q", s)
		return nil
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
		return nil
	case *flow.Receiver:
		fmt.Fprintf(b, "<%s>", v.Node())
		return nil
	}
	rv := reflect.ValueOf(v)
	switch {
	case rv.Kind() == reflect.Slice:
		b.WriteByte('[')
		for i := range rv.Len() {
			if err := write(b, rv.Index(i).Interface()); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte(']')
		return nil
	case rv.Kind() == reflect.Map && rv.Type().Key().Kind() == reflect.String:
		b.WriteByte('{')
		m := map[string]any{}
		for it := rv.MapRange(); it.Next(); {
			m[it.Key().String()] = it.Value().Interface()
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(b, "%q:", k)
			if err := write(b, m[k]); err != nil {
				return err
			}
			b.WriteByte(',')
		}
		b.WriteByte('}')
		return nil
	}
	return fmt.Errorf("has a %s in it, of which no name can be made: let id say which field tells the items apart", config.TypeOf(v))
}
