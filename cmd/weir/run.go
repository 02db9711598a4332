package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/weir-run/weir/cmd/weir/memory"
	"github.com/weir-run/weir/cmd/weir/quickstart"
	"github.com/weir-run/weir/cmd/weir/sandbox"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/engine/lastgood"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/telemetry"
	"github.com/weir-run/weir/engine/storage"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripting/versions"
)

// The values of the flag --lock.
const (
	lockVerify = "verify"
	lockUpdate = "update"
)

// runOptions are the flags of weir run.
type runOptions struct {
	watch       bool
	poll        bool
	listen      string
	storage     string
	lock        string
	scripts     string
	test        bool
	lastGood    bool
	sandbox     bool
	sandboxAddr string
	shutdown    time.Duration
	testLimit   time.Duration
	logFormat   string
	try         tryOptions
	settings    []Setting // flags and environment variables
}

func runCommand(t *terminal) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [CONFIG]",
		Short: "Run a config, or try a script",
		Long: `Run a config, a file or a directory of *.alloy files, until SIGTERM or SIGINT.
weir then stops within --shutdown-timeout: sources finish the work that they have
begun. Work that has not ended by then is cut off, or abandoned and named in the
log. A second signal, a second later or more, stops it immediately. SIGHUP,
'weir reload', or saving the config or a script reloads. If the new version
contains a mistake, the running version stays active.

A script takes over when its tests pass, at the start and after a save. If they
fail at the start, or the version was refused before, weir runs the version that was
active on the node, from the history of scripts in --storage.path. If there is none, the
script runs as it is. In both cases, the log, the health of the component and the page
report it. If a script contains an error or is gone at the start, weir runs the last
version that was active.

If the config contains an error or cannot be read at the start, weir runs the last
config that it accepted at the same path, with the modules that it imports, and reports
the error until the config is repaired. weir keeps a copy of the config, including
secrets that are written in it, in --storage.path. With --config.last-good=false, it
removes the copy, and an error in the config ends weir.

With --sandbox, weir starts a throwaway Prometheus and passes its URL to the
config, where sys.env("WEIR_SANDBOX_URL") returns it. Without CONFIG, it runs a
quickstart: metrics of this host and of weir itself, through a script, into that
Prometheus.

With --try, weir needs no config. It runs a script with the metrics of this host, or with
sample log lines if the script accepts no metrics, and prints which records the script changed,
dropped and added. It repeats this when you save the script, a file that the script uses,
or --input. --input gives other records: the text form of the examples in scripts, what
targets expose, OpenMetrics, JSON lines or log lines, up to 8 MiB. The arguments are those
under "Example Args:" in the first comment of the script; --arg replaces one. A source
is polled once, and weir prints what it emits. Requests, files, programs and
environment variables are not used unless you set --allow: weir prints the requests of
a sink and answers them with status 200. The clock stands still; --advance=1m lets a minute
pass. Ctrl-C ends with exit code 0. With --once, the script runs once, and the exit code
is 1 if it fails.

The page, the API and profiles are for the user that weir runs as. On a terminal,
weir prints a link that opens the page; 'weir page' prints another at any time and
explains how API clients authenticate. Other users can read only /metrics, the state
of the nodes and the routes that components serve.

The log goes to the standard error stream. On a terminal, weir prints messages for
people next to it. In a file, a pipe or systemd's journal every line is logfmt, or
JSON with --log.format=json or with format = "json" in the block logging.

weir sets the garbage collector's target itself, by measuring what a collection
costs, unless the environment variable GOGC is set. GOMEMLIMIT works as in every
Go program.

Exit codes:
  0  stopped by a signal; nothing that was accepted is lost
  1  the config contains mistakes or cannot be read, and there is no last good config;
     data was lost that had been accepted; or a second signal stopped weir
  2  weir cannot start: a mistake on the command line, a storage directory that
     another weir uses or that is no directory, an address that is in use`,
		Example: `  weir run --sandbox
  weir run config.alloy
  weir run --try scripts/ops/tidy.lua
  weir run --try parse.ts --input app.log --arg site=berlin
  weir run --storage.path=/var/lib/weir --server.http.listen-addr=0.0.0.0:12345 /etc/weir`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.try.file != "" {
				t.log = func() *slog.Logger { return nil } // people read what is printed
			}
			switch err := o.try.check(cmd, args); {
			case err != nil:
				return err
			case cmd.Flags().Changed("try"):
				return nil
			case len(args) > 1:
				return fmt.Errorf("run takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0 && !o.sandbox:
				return errors.New("name a config to run, try the quickstart with --sandbox, or a script with --try")
			case o.testLimit <= 0:
				return fmt.Errorf("--scripts.test-limit must be greater than 0s, not %s", o.testLimit)
			case o.shutdown <= 0:
				return fmt.Errorf("--shutdown-timeout must be greater than 0s, not %s", o.shutdown)
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("try") {
				o.try.scripts = o.scripts
				return o.try.run(cmd.Context(), t, os.Stdin)
			}
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			if o.lock != lockVerify && o.lock != lockUpdate {
				return cannotStart(fmt.Errorf("--lock is %q, must be %s or %s", o.lock, lockVerify, lockUpdate))
			}
			o.settings = settingsOf(cmd.Flags(), os.LookupEnv)
			return run(cmd.Context(), t, o, path)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.poll, "config.poll", false, "check files for changes every second instead of waiting for file events")
	f.BoolVar(&o.watch, "config.watch", true, "reload when the files of the config change; scripts are always watched")
	f.BoolVar(&o.lastGood, "config.last-good", true, "if the config or a script contains an error at the start, or the version of a script was refused before, run the last version that was active")
	f.StringVar(&o.listen, "server.http.listen-addr", "127.0.0.1:12345", "address of the page, the API and /metrics")
	storageFlag(f, &o.storage)
	f.StringVar(&o.lock, "lock", lockVerify, "verify runs only the remote content that is in weir.lock; update also accepts new content and writes it into weir.lock")
	f.StringVar(&o.scripts, "scripts", "", "folder of scripts (default: the folder scripts next to the config)")
	f.BoolVar(&o.test, "scripts.test", true, "test scripts before they take over, at the start and after a save")
	f.DurationVar(&o.testLimit, "scripts.test-limit", scripttest.DefaultReloadLimit, "time limit for all tests of a script together, in time of the script; one test may take a quarter of it")
	f.BoolVar(&o.sandbox, "sandbox", false, "start a throwaway Prometheus to send to")
	f.StringVar(&o.sandboxAddr, "sandbox.listen-addr", "127.0.0.1:12346", "address of the sandbox; if its port is in use, a free port is chosen")
	f.DurationVar(&o.shutdown, "shutdown-timeout", 30*time.Second, "time limit for stopping; the last 30%, at most 3s, is for what does not stop by itself")
	o.try.addFlags(f)
	f.StringVar(&o.logFormat, "log.format", "", "logfmt or json; overrides the block logging")
	return cmd
}

// run runs the config at path until a signal arrives. If path is "", it runs the
// quickstart.
func run(ctx context.Context, t *terminal, o runOptions, path string) (err error) {
	memory.Start()
	var catalogs []component.Catalog
	lookupEnv := os.LookupEnv
	commands := &commandAPI{storage: o.storage, build: newBuild(o.storage, o.settings)}
	s, err := newServices(port{
		listen:   o.listen,
		catalogs: func() []component.Catalog { return catalogs },
		check:    newChecker(o.scripts, o.storage, func(name string) (string, bool) { return lookupEnv(name) }),
		api:      commands,
	}, o.logFormat, t.err)
	if err != nil {
		return cannotStart(err)
	}
	logTo(t, s.telemetry, o.logFormat, path)
	scripts, err := scriptsToRun(o, path)
	if err != nil {
		return cannotStart(err)
	}
	commands.scripts = scripts
	lock, err := storage.Acquire(o.storage, time.Now())
	if err != nil {
		return cannotStart(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	if path == "" {
		if path, err = quickstart.Write(lock.Dir()); err != nil {
			return cannotStart(err)
		}
	}
	ctx, hangups, release := handleSignals(ctx, func() {
		t.errorf("stopped at once by a second signal: requests in flight were cut off; what was not delivered stays in %s and is sent after the next start", o.storage)
	})
	defer release()

	var sandboxURL string
	if o.sandbox {
		box, err := startSandbox(ctx, t, o.sandboxAddr)
		if err != nil {
			return cannotStart(err)
		}
		defer func() { err = errors.Join(err, box.Close()) }()
		sandboxURL = box.URL
		lookupEnv = func(name string) (string, bool) {
			if name == sandboxVariable {
				return box.URL, true
			}
			return os.LookupEnv(name)
		}
	}
	use := scriptsUse{log: s.telemetry.Logger(), untested: !o.test, testLimit: o.testLimit, lastGood: o.lastGood, versions: versions.Open(lock.Dir(), versions.DefaultLimits, s.telemetry.Logger()), lookupEnv: lookupEnv}
	use.compilers = registry.NewCompilers(0)
	if err := component.Register(s.telemetry.Registerer(), use.compilers.Collectors()...); err != nil {
		return cannotStart(err)
	}
	if catalogs, err = use.catalogs(scripts); err != nil {
		return cannotStart(err)
	}
	defer closePlugins(catalogs)
	e, err := engine.New(engine.Options{
		Catalogs:        catalogs,
		Scripts:         use.imported,
		Remote:          packages(lock.Dir()),
		UpdateLock:      o.lock == lockUpdate,
		GrantKinds:      scripting.NeedKinds,
		Unsupported:     unsupported(),
		Services:        s.all(),
		Getenv:          func(name string) string { v, _ := lookupEnv(name); return v },
		Logger:          s.telemetry.Logger(),
		Registerer:      s.telemetry.Registerer(),
		StoragePath:     lock.Dir(),
		Version:         version,
		ShutdownTimeout: o.shutdown,
		WatchConfig:     o.watch,
		PollFiles:       o.poll,
		LastGood:        o.lastGood,
		Announce:        announcer(t, s.http, sandboxURL, use.versions),
	})
	if err != nil {
		return cannotStart(err)
	}
	socket, err := control.Listen(lock.Dir())
	if err != nil {
		return cannotStart(err)
	}
	if err := control.WriteToken(lock.Dir(), s.http.Token()); err != nil {
		// weir starts even if, for example, the disk is full.
		s.telemetry.Logger().Warn("API clients cannot use weir over TCP, only the control socket", "err", err)
	}
	if err := s.audit.Open(lock.Dir()); err != nil {
		s.telemetry.Logger().Warn("changes over the API are recorded only in this log", "err", err)
	}
	if !o.lastGood {
		if err := lastgood.Remove(lock.Dir()); err != nil {
			s.telemetry.Logger().Warn("cannot remove the copy of the last good config", "err", err)
		}
	}
	if err := storage.CheckPrivate(lock.Dir()); err != nil {
		s.telemetry.Logger().Warn("the storage directory is not protected", "err", err)
	}

	// Goroutines that run together with the engine end with it, not with the
	// signal, so that a reload by socket is answered while the engine stops.
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { reloadOn(beside, hangups, e) })
	wg.Go(func() { s.history.Run(beside, e) })
	wg.Go(func() { memory.Keep(beside, clock.System{}, s.telemetry.Logger()) })
	wg.Go(func() {
		if err := socket.Serve(beside, s.http.Handler()); err != nil {
			s.telemetry.Logger().Error("the control socket was closed; weir reload does not work", "err", err)
		}
	})
	err = e.Run(ctx, path)
	switch stopped, ok := errors.AsType[*engine.StopError](err); {
	case ok && !stopped.Lost():
		t.printStatus("stopped", stopped.Error()+"; nothing that was accepted is lost, what is not sent yet is kept in "+o.storage)
		err = nil
	case err == nil && ctx.Err() != nil:
		t.printStatus("stopped", "no call was cut short; what is not sent yet is kept in "+o.storage)
	}
	end()
	wg.Wait()
	return runError(t, e, path, err, ctx.Err() != nil)
}

// announcer returns a function that prints the lines of the engine. Before the
// first line, which reports the start, it prints the addresses of the page and of
// the sandbox, because the log format of the config is only known then.
func announcer(t *terminal, h *http.Service, sandboxURL string, tested *versions.Store) func(line string) {
	where := sync.OnceFunc(func() {
		tested.Sweep()              // every script of the config has been tested
		_ = memory.ReleaseProgram() // releases memory of the start; memory.Keep tries again
		if sandboxURL != "" {
			t.printStatus("sandbox", sandboxURL+" answers PromQL until weir stops")
		}
		switch url := h.URL(); {
		case url == "":
		case t.logger() == nil && t.errTerminal:
			t.keep(slog.LevelInfo, "page: "+url) // the link is a secret
			t.printLine("web UI", h.PageURL())
			t.printLine("", "this link opens the web UI once, within 10 minutes; 'weir page' prints another")
		default: // more people can read the log than may use the link
			t.printStatus("page", url)
		}
	})
	return func(line string) {
		where()
		t.announce(line)
	}
}

// logTo redirects the messages of t to the log of the run, unless people read
// them: t is a terminal and no format was requested. Until a config is loaded,
// the log uses the level and format of its logging block, if the block can be
// read separately.
func logTo(t *terminal, log *telemetry.Service, format, path string) {
	logger := log.Logger()
	t.kept = log.Kept()
	t.log = func() *slog.Logger {
		if t.errTerminal && format == "" && log.Format() != "json" {
			return nil
		}
		return logger
	}
	slog.SetDefault(logger)    // for libraries that use slog or log
	klog.SetSlogLogger(logger) // the client of discovery.kubernetes
	if path == "" {
		return
	}
	cfg, _ := new(config.Config).Reload(path) // not Load, which would empty a pipe; mistakes are reported when the config is run
	for _, b := range cfg.Blocks {
		def := log.Definition()
		if args := def.NewConfig(); b.Name == def.Block && !b.Decode(cfg.NewScope(version), args).HasErrors() {
			_ = log.Update(args) // valid arguments are always accepted
		}
	}
}

// runError prints the mistakes of a config that was refused. If the engine ended
// for another reason without being told to stop, the start failed.
func runError(t *terminal, e *engine.Engine, path string, err error, told bool) error {
	if ds, ok := errors.AsType[config.Diagnostics](err); ok {
		cfg, _ := e.Check(path) // to get the config's files, including imported ones
		if err := t.diagnostics(ds, cfg.Files); err != nil {
			return err
		}
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot run %s: %s", path, count(len(ds), "mistake"))}
	}
	if err != nil && !told {
		return cannotStart(err)
	}
	return err
}

// sandboxVariable is the environment variable in which configs and scripts find
// the URL of the sandbox. It is set only for them, not for the process.
const sandboxVariable = "WEIR_SANDBOX_URL"

// startSandbox starts weir as a child process that is the sandbox.
func startSandbox(ctx context.Context, t *terminal, addr string) (*sandbox.Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start the sandbox: %w", err)
	}
	return sandbox.Start(ctx, exe, []string{"sandbox", "--listen-addr=" + addr}, func(line string) { t.errorf("the sandbox: %s", line) })
}

// oneWish is the time within which two signals count as one request to stop:
// timeout(1) signals the process and then its group, and a terminal and a wrapper
// may both forward the same Ctrl-C.
const oneWish = time.Second

// handleSignals handles the signals of the process until release is called. It
// returns a context that ends with the first SIGTERM or SIGINT, and a channel of
// SIGHUP. A second SIGTERM or SIGINT that arrives at least oneWish after the
// first calls last and ends the process.
func handleSignals(parent context.Context, last func()) (ctx context.Context, hangups <-chan os.Signal, release func()) {
	ctx, cancel := context.WithCancel(parent)
	hup := make(chan os.Signal, 1)
	term := make(chan os.Signal, 2)
	signal.Notify(term, os.Interrupt, syscall.SIGTERM)
	signal.Notify(hup, syscall.SIGHUP)
	released := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var first time.Time
		for {
			select {
			case <-term:
				if first.IsZero() {
					first = time.Now()
					cancel()
				} else if time.Since(first) >= oneWish {
					last()
					os.Exit(exitFailed)
				}
			case <-released:
				return
			}
		}
	})
	return ctx, hup, func() {
		signal.Stop(term)
		signal.Stop(hup)
		close(released)
		wg.Wait()
		cancel()
	}
}

// reloadOn reloads the config at each signal. The engine reports the result.
func reloadOn(ctx context.Context, hup <-chan os.Signal, e *engine.Engine) {
	for {
		select {
		case <-hup:
			_ = e.Reload(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// scriptsDir returns the folder of scripts for a config: the value of the flag,
// or the folder scripts next to the config files. The latter need not exist.
func scriptsDir(flag, config string) (string, error) {
	if flag != "" {
		if _, err := os.ReadDir(flag); err != nil {
			return "", fmt.Errorf("cannot read scripts: %w", err)
		}
		return flag, nil
	}
	if fi, err := os.Stat(config); err == nil && fi.IsDir() {
		return filepath.Join(config, "scripts"), nil
	}
	return filepath.Join(filepath.Dir(config), "scripts"), nil
}

// scriptsToRun is scriptsDir for a config of which the last good version may run instead.
func scriptsToRun(o runOptions, config string) (string, error) {
	if _, err := os.Stat(config); errors.Is(err, fs.ErrNotExist) && o.scripts == "" && o.lastGood {
		abs, err := filepath.Abs(config)
		if good, _ := lastgood.Get(o.storage, abs); err == nil && good.IsDir() { // the engine reports why it cannot be read
			return filepath.Join(config, "scripts"), nil
		}
	}
	return scriptsDir(o.scripts, config)
}
