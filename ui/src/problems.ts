// What is wrong with weir and its nodes, and what to do about it.

import type { Node, Status } from "./api";
import { link, nodeLink } from "./route";
import { plural } from "./text";

/** What to do, and where. */
export interface Fix {
  fix: string;
  links: { title: string; href: string }[];
}

export interface Problem extends Fix {
  id: string;
  title: string;
  text: string;
  since?: string;
  /** The view of what has the problem. */
  href: string;
}

export const targetsOf = (n: Node) => {
  const list = (n.debug as { targets?: { health: string; url: string; error?: string }[] } | null)?.targets;
  return Array.isArray(list) ? list : undefined;
};

export const sick = (n: Node) => n.health.state === "unhealthy" || n.health.state === "exited";

/** The problems of weir and its nodes, the most severe first. */
export function problemsOf(s: Status): Problem[] {
  const out: Problem[] = [];
  if (s.config_error) {
    out.push({
      id: "config",
      title: "The config on disk was refused. An older one runs.",
      text: s.config_error,
      fix: "Correct the file at the position in the message and save it.",
      links: [{ title: "All mistakes, at their lines", href: link(["config"], { tab: "disk" }) }],
      href: link(["config"]),
    });
  }
  for (const text of s.stalled ?? []) {
    out.push({
      id: `stalled ${text}`,
      title: "An operation of weir does not return.",
      text,
      fix: "Check whether the file system or the network that the message names responds.",
      links: [{ title: "Log", href: link(["log"]) }],
      href: link(["reloads"]),
    });
  }
  for (const n of [...s.components, ...s.services].filter(sick)) {
    out.push({
      id: n.id,
      title: `${n.id} is ${n.health.state}.`,
      text: messagesOf(n).join("\n"),
      since: n.health.time,
      ...fixesOf(n),
      href: nodeLink(n.id),
    });
  }
  for (const n of s.components) {
    if (n.quarantined) {
      out.push({
        id: `${n.id} quarantine`,
        title: `${n.id} has ${plural(n.quarantined, "record")} in quarantine.`,
        text: "The script failed on these records.",
        fix: "Look at them, correct the script and replay them.",
        links: [
          { title: "Quarantine", href: nodeLink(n.id, { tab: "quarantine" }) },
          { title: "Playground", href: nodeLink(n.id, { tab: "playground" }) },
        ],
        href: nodeLink(n.id, { tab: "quarantine" }),
      });
    }
    const down = targetsOf(n)?.filter((t) => t.health === "down") ?? [];
    if (down.length > 0) {
      const view = link(["targets"], { filter: `down ${n.id}` });
      out.push({
        id: `${n.id} targets`,
        title: `${n.id} cannot scrape ${plural(down.length, "target")}.`,
        text: down
          .slice(0, 3)
          .map((t) => `${t.url}: ${t.error ?? "down"}`)
          .join("\n"),
        fix: "Check whether the target is running and its address is right. weir tries again at the next interval.",
        links: [{ title: down.length > 3 ? "All targets that are down" : "Targets", href: view }],
        href: view,
      });
    }
  }
  return out;
}

/** Everything that is wrong with a node. */
export const messagesOf = (n: Node) => (n.problems?.length ? n.problems : [n.health]).map((h) => h.message);

const stuck = /queue does not drain/;

/** What to do about everything that is wrong with a node. */
export function fixesOf(n: Node): Fix {
  const all = messagesOf(n);
  // A queue waits because of another problem, if there is one.
  const causes = all.length > 1 ? all.filter((m) => !stuck.test(m)) : all;
  const fixes = causes.map((m) => fixOf(n, m));
  return {
    fix: [...new Set(fixes.map((f) => f.fix))].join(" "),
    links: [...new Map(fixes.flatMap((f) => f.links).map((l) => [l.href, l])).values()],
  };
}

function fixOf(n: Node, message: string): Fix {
  const script = { title: "Script, tests and versions", href: nodeLink(n.id, { tab: "script" }) };
  const playground = { title: "Playground", href: nodeLink(n.id, { tab: "playground" }) };
  if (/refused by test/.test(message))
    return {
      fix: `Correct the script or its test. The tab Script and 'weir test ${n.sources[0] ?? ""}' run the tests.`,
      links: [playground, script],
    };
  if (/refused by (shadow|canary)/.test(message))
    return { fix: "Compare the versions, and correct the script.", links: [script, playground] };
  if (/refused by (compile|check)/.test(message))
    return {
      fix: "Correct the script at the position in the message and save it. The running version stays active.",
      links: [playground, script],
    };
  if (/unreachable|connection refused|no such host|timeout|deadline/.test(message))
    return {
      fix: "Check the address in the arguments and whether the endpoint is running. weir tries again by itself.",
      links: n.sends_to.length === 0 ? [{ title: "Journals", href: link(["journals"]) }] : [],
    };
  if (stuck.test(message))
    return {
      fix: "Check whether the endpoint accepts data. weir keeps what waits and tries again by itself.",
      links: [{ title: "Journals", href: link(["journals"]) }],
    };
  if (/permission denied/.test(message))
    return { fix: "Give the user that weir runs as access to the file.", links: [] };
  if (/no such file/.test(message)) return { fix: "Create the file, or correct its path in the config.", links: [] };
  const log = { title: "Log", href: link(["log"], { filter: n.id }) };
  if (n.health.state === "exited")
    return { fix: "The component restarts by itself. The log has more about the reason.", links: [log] };
  return { fix: "Look at the debug information of the node and at the log.", links: [log] };
}
