import type { State } from "../api";

/** The symbol of a state. Its shape differs as well as its colour. */
export const symbols: Record<State, string> = { healthy: "●", unhealthy: "▲", exited: "■", unknown: "○" };

export function HealthBadge({ state, text = state }: { state: State; text?: string }) {
  return (
    <span class={`health ${state}`}>
      <span aria-hidden="true">{symbols[state]}</span> {text}
    </span>
  );
}
