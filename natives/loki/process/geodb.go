package process

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/oschwald/maxminddb-golang"

	"github.com/weir-run/weir/engine/files"
)

// geoFiles are the databases of a node's stages, by path.
type geoFiles struct {
	mu  sync.Mutex
	all map[string]*geoDB
}

// geoDB is a database in memory: of a mapped file that is cut short a read would
// end the process.
type geoDB struct {
	*maxminddb.Reader
	path string
	fileStamp
}

// fileStamp tells versions of a file apart.
type fileStamp struct {
	size     int64
	modified time.Time
}

// maxDatabase bounds a database, in bytes: it is in memory.
const maxDatabase = 1 << 30

func stampOf(path string) (fileStamp, error) {
	i, err := files.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{i.Size(), i.ModTime()}, nil
}

// open returns the database in a file as it is now.
func (g *geoFiles) open(path string) (*geoDB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the database %q: %w", path, err)
	}
	stamp, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the database: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if db := g.all[path]; db != nil && db.fileStamp == stamp {
		return db, nil
	}
	text, err := files.Read(path, maxDatabase)
	if err != nil {
		return nil, fmt.Errorf("cannot read the database: %w", err)
	}
	r, err := maxminddb.FromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use the database %q: %w", path, err)
	}
	db := &geoDB{r, path, stamp}
	if g.all == nil {
		g.all = map[string]*geoDB{}
	}
	g.all[path] = db
	return db, nil
}

// retainOnly forgets all databases but those.
func (g *geoFiles) retainOnly(dbs []*geoDB) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = map[string]*geoDB{}
	for _, db := range dbs {
		g.all[db.path] = db
	}
}

// changed reports whether the file is another one now. One that is gone is not:
// what was read goes on.
func (db *geoDB) changed() bool {
	now, err := stampOf(db.path)
	return err == nil && now != db.fileStamp
}
