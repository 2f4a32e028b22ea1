// Where things are shown: links of the worker, and those that the page makes itself.
import { href } from "./route.js";

/** { view, query } of the worker as an address; it names its own flow. */
export const linkTo = (link) => href(link.view, { flow: null, ...link.query });
export const flowLink = (flow) => href("flow", { flow });
