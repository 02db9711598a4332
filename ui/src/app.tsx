// The frame around all views: the navigation, the state of the connection, and the view
// that the URL names.

import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { request } from "./api";
import { changesOff, useAllowed } from "./parts/allowed";
import { ErrorBox } from "./parts/message";
import { link, type Route, useRoute } from "./route";
import { refresh, useStatus } from "./status";
import { age, messageOf } from "./text";
import { applyTheme, type Theme, theme } from "./theme";
import { BuildView } from "./views/build";
import { Config } from "./views/config";
import { Docs } from "./views/docs";
import { Graph } from "./views/graph";
import { Journals } from "./views/journals";
import { Log } from "./views/log";
import { Metrics } from "./views/metrics";
import { NodeView } from "./views/node";
import { Overview } from "./views/overview";
import { Reloads } from "./views/reloads";
import { Scripts } from "./views/scripts";
import { Targets } from "./views/targets";
import { Why } from "./views/why";

interface View {
  name: string;
  title: string;
  show: ComponentType<{ route: Route }>;
}

const views: View[] = [
  { name: "", title: "Overview", show: Overview },
  { name: "graph", title: "Graph", show: Graph },
  { name: "why", title: "Why", show: Why },
  { name: "targets", title: "Targets", show: Targets },
  { name: "scripts", title: "Scripts", show: Scripts },
  { name: "reloads", title: "Reloads", show: Reloads },
  { name: "journals", title: "Journals", show: Journals },
  { name: "config", title: "Config", show: Config },
  { name: "metrics", title: "Metrics", show: Metrics },
  { name: "log", title: "Log", show: Log },
  { name: "build", title: "Build", show: BuildView },
  { name: "docs", title: "Docs", show: Docs },
];

export function App() {
  const route = useRoute();
  const { status, now, problem } = useStatus();
  const name = route.path[0] ?? "";
  const view = views.find((v) => v.name === name);
  const title = name === "node" ? (route.path[1] ?? "Node") : (view?.title ?? "Not found");
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${title} · weir`;
  }, [title]);
  // A new view begins at its top, and screen readers begin to read there. An effect after the next
  // frame could take the focus from what the user has already focused in the view.
  const path = route.path.join("/");
  const first = useRef(true);
  useLayoutEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault(); // the fragment names the view
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <header>
        <a class="logo" href={link([])}>
          weir
        </a>
        <nav aria-label="Views">
          {views.map((v) => (
            <a key={v.name} href={link(v.name ? [v.name] : [])} aria-current={v.name === name ? "page" : undefined}>
              {v.title}
            </a>
          ))}
        </nav>
        <div class="about">
          {status && (
            <span title={status.config}>
              {status.version} · up {age(status.started, now)}
              {status.stopping ? " · stopping" : status.ready ? "" : " · not ready"}
            </span>
          )}
          <ReloadButton />
          <ThemeChoice />
        </div>
      </header>
      {problem === "lost" && <ErrorBox title="weir does not respond." text="The page shows the last known state." />}
      {problem === "ended" && (
        <ErrorBox title="The session has ended." text="Run 'weir page' and open the link that it prints." />
      )}
      <main id="main" ref={main} tabIndex={-1} class={problem ? "stale" : ""}>
        {name === "node" ? <NodeView route={route} /> : view ? <view.show route={route} /> : <NotFound />}
      </main>
    </>
  );
}

function NotFound() {
  return (
    <p>
      There is no such view. <a href={link([])}>Go to the overview.</a>
    </p>
  );
}

function ReloadButton() {
  const { status } = useStatus();
  const allowed = useAllowed().changes;
  const [state, set] = useState<{ busy: boolean; error: string }>({ busy: false, error: "" });
  const reload = async () => {
    set({ busy: true, error: "" });
    try {
      await request("/-/reload", { method: "POST" });
      set({ busy: false, error: "" });
    } catch (e) {
      set({ busy: false, error: messageOf(e) });
    }
    await refresh();
  };
  return (
    <>
      <button
        type="button"
        disabled={state.busy || !allowed}
        onClick={reload}
        title={status && !allowed ? changesOff : "Read the config and the scripts again"}
      >
        {state.busy ? "Reloading…" : "Reload"}
      </button>
      {state.error && (
        <dialog open class="toast">
          <ErrorBox title="weir has refused the change." text={state.error} />
          <button type="button" onClick={() => set({ busy: false, error: "" })}>
            Close
          </button>
        </dialog>
      )}
    </>
  );
}

function ThemeChoice() {
  const [t, set] = useState(theme());
  return (
    <select
      aria-label="Theme"
      title="Theme"
      value={t}
      onChange={(e) => {
        const next = e.currentTarget.value as Theme;
        applyTheme(next);
        set(next);
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
