// Package redis is remote.redis: it exports the strings and the hashes below a
// prefix in Redis or Valkey, and exports them again when they change.
//
// A field of a hash is exported like a key below the key of the hash; other types
// are not exported. If the server sends keyspace notifications
// (notify-keyspace-events with KA or AKE), a change is exported at once; otherwise,
// it is found after poll_frequency. Each read scans all keys of the database:
// choose poll_frequency accordingly if there are millions. If Redis cannot be
// read, the node becomes unhealthy and the last values stay exported, so that
// dependent nodes continue to run.
package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
)

// maxKeys is the maximum number of keys that are read.
const maxKeys = 100_000

// Registration describes remote.redis.
func Registration() component.Registration {
	return database.Registration(database.Kind{
		Name:    "remote.redis",
		Exports: database.Exports{},
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Common:  func(args any) *database.Arguments { return &args.(*Arguments).Database },
		Files: func(args any) []string {
			if t := args.(*Arguments).TLSConfig; t != nil {
				return t.Files()
			}
			return nil
		},
		Open: open,
	})
}

// store is a connection to a server.
type store struct {
	client    *redis.Client
	separator string
	pubsub    *redis.PubSub
	events    <-chan *redis.Message
}

// silent discards messages: errors are in the health.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// silence keeps the library from writing to the standard error stream.
var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

func open(ctx context.Context, args any, _ database.Options) (database.Store, error) {
	silence()
	a := args.(*Arguments)
	o := &redis.Options{
		Network: "tcp", Addr: a.Address, DB: a.DB, Username: a.Username, Password: string(a.Password),
		MaxRetries: -1, DialTimeout: a.Database.PollTimeout, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if strings.HasPrefix(a.Address, "/") {
		o.Network = "unix"
	}
	if a.TLSConfig != nil {
		var err error
		if o.TLSConfig, err = a.TLSConfig.Load(); err != nil {
			return nil, err
		}
		if o.TLSConfig.ServerName == "" {
			o.TLSConfig.ServerName, _, _ = net.SplitHostPort(a.Address)
		}
	}
	s := &store{client: redis.NewClient(o), separator: a.Separator}
	// The subscription precedes the first Get, so that no change is lost in between.
	s.pubsub = s.client.PSubscribe(ctx, fmt.Sprintf("__keyspace@%d__:*", a.DB))
	if _, err := s.pubsub.Receive(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.events = s.pubsub.Channel()
	return s, nil
}

// key returns the key in Redis for a path.
func (s *store) key(path string) string {
	if s.separator == "/" {
		return path
	}
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", s.separator)
}

// path returns the path for a key in Redis.
func (s *store) path(key string) string {
	if s.separator == "/" {
		return key
	}
	return "/" + strings.ReplaceAll(key, s.separator, "/")
}

// quote escapes the characters that are special in patterns of Redis.
var quote = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// Get reads all strings and hashes at and below the prefixes.
func (s *store) Get(ctx context.Context, prefixes []string) (map[string]string, error) {
	found := map[string]bool{}
	above := map[string]bool{} // may be hashes whose fields matter, if they may be read
	for _, p := range prefixes {
		p = s.key(p)
		for cursor := uint64(0); ; {
			keys, next, err := s.client.Scan(ctx, cursor, quote.Replace(p)+"*", 1000).Result()
			if err != nil {
				return nil, err
			}
			for _, k := range keys {
				found[k] = true
			}
			if len(found) > maxKeys {
				return nil, fmt.Errorf("there are more than %d keys: use a longer prefix", maxKeys)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
		if dir, ok := strings.CutSuffix(p, s.separator); ok && dir != "" {
			above[dir] = true
		}
		// A hash above the prefix may have the prefix as a field.
		if i := strings.LastIndex(p, s.separator); i > 0 && !strings.HasSuffix(p, s.separator) {
			above[p[:i]] = true
		}
	}
	keys := slices.Collect(maps.Keys(found))
	for k := range above {
		if !found[k] {
			keys = append(keys, k)
		}
	}
	return s.values(ctx, keys, func(key string) bool { return !found[key] })
}

// values reads keys. Those that are optional are left out if they must not be read.
func (s *store) values(ctx context.Context, keys []string, optional func(key string) bool) (map[string]string, error) {
	pipe := s.client.Pipeline()
	texts, hashes := make([]*redis.StringCmd, len(keys)), make([]*redis.MapStringStringCmd, len(keys))
	for i, k := range keys {
		texts[i], hashes[i] = pipe.Get(ctx, k), pipe.HGetAll(ctx, k)
	}
	if len(keys) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && !known(err) && !denied(err) {
			return nil, err
		}
	}
	out := map[string]string{}
	for i, k := range keys {
		text, err := texts[i].Result()
		if err == nil {
			out[s.path(k)] = text
			continue
		}
		if denied(err) && optional(k) {
			continue
		}
		if !known(err) {
			return nil, err
		}
		fields, err := hashes[i].Result()
		if err != nil && !known(err) {
			return nil, err
		}
		for name, value := range fields {
			out[strings.TrimSuffix(s.path(k), "/")+"/"+name] = value
		}
	}
	return out, nil
}

// known reports whether an error means that a key is gone or has another type.
func known(err error) bool {
	return errors.Is(err, redis.Nil) || strings.HasPrefix(err.Error(), "WRONGTYPE")
}

// denied reports whether the user must not read a key.
func denied(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM") }

// Watch waits for a keyspace notification of a key that may matter.
func (s *store) Watch(ctx context.Context, prefixes []string) error {
	for {
		select {
		case m, ok := <-s.events:
			if !ok {
				return errors.New("the subscription ended")
			}
			_, key, _ := strings.Cut(m.Channel, ":")
			for _, p := range prefixes {
				// The key may also be a hash above the prefix.
				if p = s.key(p); strings.HasPrefix(key, p) || strings.HasPrefix(p, key) {
					return nil
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the connection.
func (s *store) Close() error { return errors.Join(s.pubsub.Close(), s.client.Close()) }
