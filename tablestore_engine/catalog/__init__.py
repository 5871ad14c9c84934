"""Names -> tables and views: folders as Paimon's filesystem catalog lays them out, and what a name means."""
