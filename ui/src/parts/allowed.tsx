// What the block ui allows, and why buttons are disabled.

import type { Allowed } from "../api";
import { useStatus } from "../status";

/** What the page may do; nothing before the status is known. */
export function useAllowed(): Allowed {
  return useStatus().status?.allowed ?? { live_data: false, changes: false, edit: false };
}

export const changesOff =
  "Changes over the network are off. To allow them, set edit = true in the block ui of the config.";

/** The reason for disabled buttons, if changes are off. */
export function ChangesOff() {
  const { status } = useStatus();
  return status && !status.allowed.changes ? <p class="box warn">{changesOff}</p> : null;
}
