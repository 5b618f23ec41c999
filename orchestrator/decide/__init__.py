"""`decide=`: what makes a run fastest on its cluster, found out before its first step."""
