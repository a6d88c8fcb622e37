// The pages that there are, in the order of the navigation. See app.js for what a page is.

export const pages = [];

export function register(page) { pages.push(page); }
